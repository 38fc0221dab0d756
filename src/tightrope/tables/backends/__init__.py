"""What differs between the engines, declared, and their column types; knows no request and no person."""
