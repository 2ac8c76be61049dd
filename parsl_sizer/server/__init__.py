"""What did the team run? Pages and JSON over an archive, for browsers and programs.

A request comes in through `app`: `guard` looks at who asks, `query` reads what is looked
for, `reading` finds it and `pages` and `listing` show it. Only `posting` adds to the archive:
lines as ``parsl-sizer export`` writes them, checked one by one, and all or none. `serve`
puts the whole behind a port; nothing else here needs one.

Nobody who asks is trusted: what comes in has a size, is text or JSON, and is never unpickled.
"""
