"""Integer noise, exact: tables of weights, their privacy loss, and sampling."""
