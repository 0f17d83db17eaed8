-- The mark as this transaction sees it.
SELECT mark FROM {table} WHERE resource = :resource
