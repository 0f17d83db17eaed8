"""What touches psycopg: connections, the blocking wire and the asyncio wire."""
