// Package disttest provides simulated networks for tests, and the contract that every
// dist.Transport must fulfil.
//
// [TestTransport] tests the contract. It uses vectors of devicetest.NewFloat64; a Transport that
// copies values must return vectors of such a device.
//
// [Sim] is a dist.Transport with faults. It has no clock and no goroutine: delay is counted in
// deliveries, and a cut is a pure function of (seed, edge, t). Both ends therefore agree about
// cuts, and a run with faults repeats bit for bit, however its goroutines are scheduled.
//
// [Network] opens sessions between agents whose processes start and end, over links that can be
// cut. It uses the clock; run it in a bubble of testing/synctest. In a scripted network a test
// decides which record is delivered when; the scripts and transcripts in testdata show both
// networks at work.
//
// [UnusedPort] chooses a port for a program that must be told one before it listens there.
//
// Duties of a caller of Sim: as with any Transport, handle dist.ErrIdle from Recv and release
// received messages; run each agent in its own goroutine, or send before receiving.
package disttest
