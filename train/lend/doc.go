// Package lend has vectors that the agents of a device use one after the other, in runs of so many
// agents that each cannot have its own: of gradients ([Turns]), and of exchanges that wait for the
// next step ([Mailboxes]). What is used again is in the cache. [Shared] are vectors that they read
// together.
package lend
