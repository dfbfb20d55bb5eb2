"""Plumbing for the series: broker, Spark, load, measurement, drawing. Importing it starts nothing."""
