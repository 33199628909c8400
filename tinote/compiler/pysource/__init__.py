"""Analysis of Python functions: every query about their source and their code is answered here, and only here.

==================  ===================================================================================================
`definitions.py`    which text and which syntax tree a function has, and whether Python still runs that
`private_names.py`  what Python reads where a name within a class begins with two underscores
`codes.py`          which names code looks up outside of itself, what it imports, which cells a function has
`names.py`          what a name or an attribute stands for, found without running code of the user's
`effects.py`        what a call does besides giving a value
`origins.py`        whose a module is: this package's, a library's, or the user's
==================  ===================================================================================================

Those who ask keep what is theirs: the front end its captures and errors, captured steps their guards and refusals,
shipping what goes along, the cache its descriptions.
"""
