"""What one draw still tells, for laws known exactly, nearly or from samples; knows no table of people."""
