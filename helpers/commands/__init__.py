"""What `python -m helpers …` does."""
