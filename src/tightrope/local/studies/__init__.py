"""From a question to people, mechanism and findings; what repeating and shuffling change; independent of tables."""
