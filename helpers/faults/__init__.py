"""What breaks on purpose: queries that are killed, a store that answers late."""
