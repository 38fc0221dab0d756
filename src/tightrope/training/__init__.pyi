from .history import Entry as Entry
from .history import History as History
from .opacus import OpacusAccountant as OpacusAccountant
