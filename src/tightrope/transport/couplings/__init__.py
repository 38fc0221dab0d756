"""The mechanism that hides a group, and how far it moves values; knows nothing of laws known only nearly."""
