"""Independent verifier of Tightrope documents: exact integers and intervals, and no code shared with the writers."""
