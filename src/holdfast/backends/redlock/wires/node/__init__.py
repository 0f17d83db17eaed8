"""How the blocking and the asyncio wire of a quorum reach one node."""
