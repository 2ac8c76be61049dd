"""What is a call of a known framework about?

Frameworks give Parsl functions of their own, with the user's inside: by their names all
tasks are alike. A recogniser knows one framework: it reads the category and the features off
a call, finds an error in a result that only looks like one, and tells the framework at the
end what its task was given. None imports its framework unless its objects are there already.
"""

from .base import PLAIN, Recogniser, Seen
from .catalog import Recognisers

__all__ = ["PLAIN", "Recogniser", "Recognisers", "Seen"]
