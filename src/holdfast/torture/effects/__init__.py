"""Torture of what is built on tokens (`once`): effects at a resource, done once behind the fence, whatever fails.

ledger         the resource: which effects were applied, in which order, with which token
once_worker    one process that makes attempts, and strikes itself at the worst moments
run            workers, faults, and the verdict
"""
