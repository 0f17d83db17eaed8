"""What the engines on a relational database share: PostgreSQL and MariaDB differ in SQL and in driver calls only.

Here are their clients, as flows: of the lock table (`table_client`) and of session locks (`session_client`). They know
an engine by its connector, its connections (`connection`) and its codec.
"""
