"""`holdfast advise`: do you need a lock at all, and if not, what? Questions, and at their end what to use.

1. All that is known is data: `tree.toml`. The page docs/advise.md is made from it (`page`), and says the same.
2. Decisions are pure functions of that data and the answers: `walk`, `settings`, `advice`. A person, a file of answers
   and a test walk the same tree.
3. A leaf that does not work is not in the tree: the tests run the code of every one.
4. Questions go to stderr, the advice to stdout.
"""
