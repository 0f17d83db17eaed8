"""What talks to a relational database, once for threads and once for asyncio, whatever the engine."""
