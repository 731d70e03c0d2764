// Package harness starts brokers, Provisioners and fake gardens for tests, and calls them as their users do.
//
// It serves the end-to-end, conformance, crash and compatibility tests:
//
//   - [Start] runs a broker, a Provisioner and a garden in the test process; [StartBroker] and [StartProvisioner] run one service.
//   - [Client] sends Open Service Broker API requests and waits for their operations.
//   - [FaultProxy] forwards calls between two services, and delays, rejects or breaks the calls that a test selects.
//   - [InjectClusterFaults] makes the garden fail or stop while it creates, changes or deletes clusters.
//   - [EachDatabase] runs a test on SQLite and on PostgreSQL. A package that uses it needs postgrestest.Main as its TestMain.
//   - [Seed] makes random tests repeatable: it logs the seed, and the variable TEST_SEED sets the seed.
//
// Every service stops when its test ends. An error from a service fails the test.
package harness
