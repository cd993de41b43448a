"""`make demo`: an API process asks, an engine process answers with a real language model.

Prompts and tokens travel over PUSH/PULL, the engine's status over PUB/SUB, each message one
msgpack array. The API side (`client.py`) is asyncio, the engine side (`engine.py`) is blocking.
"""
