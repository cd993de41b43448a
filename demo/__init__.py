"""`make demo`: an API process asks, an engine process answers with a real language model.

Both are on the engine channel of `zerohop.serving`: the API side (`client.py`) on an event loop,
the engine side (`engine.py`) in a loop of its own. The engine tells which blocks of its KV cache it
stores and removes, and the API side keeps a view of them, as a router would.
"""
