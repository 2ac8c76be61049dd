"""What did it use? Travels into tasks by value; standard library only.

A call reaches a worker as `travel.run_packed` (bytes, for a warm runner) or as
`travel.wrapped` (a function, forked or in place), with an order: limits, isolation,
sandbox. It passes the `node_ledger` if the order holds a claim. Then a `Supervisor`
hands it to a runner, a process of its own that a `keeper` starts and ends together
with all that came out of it, and a `Sampler` looks at the tree in /proc, with a
`limit` that says when a breach has lasted. What comes back is a report of plain values.

Nothing in here imports anything else of the package, so that it runs where the
package is not installed.
"""
