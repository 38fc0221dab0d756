"""What can be asked, what it needs from the engine and how accurate it is; knows no session."""
