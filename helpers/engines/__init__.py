"""What runs: Kafka, Spark, Java and their jars, started so that nothing is left behind."""
