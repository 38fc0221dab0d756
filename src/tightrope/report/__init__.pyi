from .pages.blocks import Table as Table
from .pages.page import document_html as document_html
from .pages.page import html as html
from .pages.page import study_html as study_html
from .pictures import plots as plots
