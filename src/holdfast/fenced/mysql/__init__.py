"""The table of the fence in MariaDB; the fence itself is `holdfast.sql.Fence`, on the user's own connection."""
