"""Reports of tables of any size: columns, jobs, Arrow; knows no study."""
