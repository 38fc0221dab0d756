"""From a request to bounded integers per key: narrow rows, bounding, keys; knows no file and no frame."""
