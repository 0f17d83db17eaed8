"""How `holdfast run` guards a command: two processes that watch each other, and the command in a group of its own.

    shell ── wrapper (supervisor.py) ──── the command and its children, in their own process group (process_tree.py)
                │  socket, shared deadline
             holder (holder.py): talks to the engine, keeps the lease

1. The wrapper has one thread and no engine: it starts the command, passes signals on, and stops it at the deadline.
2. The holder is forked before there is any thread. It renews the lease even while the wrapper is suspended (Ctrl-Z),
   and if the wrapper dies, or is suspended during a loss, it stops the command itself, and releases.
3. The deadline lies a margin before the end of validity: long enough for TERM, `--grace`, and KILL.
4. The lock is released only after the command's whole process group has ended.
"""
