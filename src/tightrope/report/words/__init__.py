"""Documents read with patience, numbers and sentences for people; know neither HTML nor pictures."""
