"""What the engine itself says: batches, stages, checkpoint and shuffle files, refusals."""
