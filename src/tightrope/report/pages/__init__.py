"""The pages: models, templates, tables; know nothing but documents."""
