from .charts import plots as plots
from .pages.blocks import Table as Table
from .pages.document_page import document_html as document_html
from .pages.document_page import study_html as study_html
from .pages.release_page import html as html
from .pages.summaries import html_table as html_table
from .pages.summaries import summary_html as summary_html
from .pages.summaries import summary_text as summary_text
