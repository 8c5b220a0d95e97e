// Package disttest is a network in a bottle: the contract that every dist.Transport must pass, and
// [Sim], a network with a seed and faults.
//
// [TestTransport] runs the contract against what its open function returns; its values are vectors
// of devicetest.NewFloat64. A Transport that copies values hands out vectors of such a device, too.
//
// A Sim has no clock and no goroutine. Delay is counted in deliveries, and a cut is a pure function
// of (seed, edge, t), so both ends agree about it and a run with faults repeats bit for bit: what
// an agent hears does not depend on when it hears it.
//
// Duties of a caller of Sim: as with any Transport, handle dist.ErrIdle from Recv, release what was
// received, and give each agent a goroutine of its own, or send before receiving.
package disttest
