"""The libraries behind the engines: loading, connecting, column types; know no request and no person."""
