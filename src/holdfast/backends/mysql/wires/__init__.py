"""What touches PyMySQL and sockets: connections, the blocking wire and the asyncio wire."""
