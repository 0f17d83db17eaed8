"""Torture of what is built on tokens: effects, done once behind the fence, whatever fails; and without it.

run                 worker processes, faults, and the verdict of a workload
worker              what each worker process has; it strikes itself at the worst moments
workloads           what can be tortured: `once`, actors, partitions, the log
NAME_process        the worker of a workload
NAME_run            its verdict
ledger              a resource: which effects were applied, in which order, with which token
log_database        the database of a log, with a table of effects; redis_log: the same for Redis
planted             the library without its fences
"""
