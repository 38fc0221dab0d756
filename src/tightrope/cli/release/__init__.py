"""From a table to answers: init, plan, release; know no study and no coupling."""
