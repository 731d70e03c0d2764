// Package harness starts brokers, Provisioners and fake gardens for tests, and talks to them as their users do.
//
// It serves the end-to-end, conformance, crash and compatibility tests:
//
//   - [Start] runs a broker, a Provisioner and a garden in the process of the test; [StartBroker] and [StartProvisioner] run one service.
//   - [Client] sends requests of the Open Service Broker API and waits for their operations.
//   - [FaultProxy] sits between two services and delays, refuses or breaks the calls that a test selects.
//   - [InjectClusterFaults] makes the garden fail or stop while it creates, changes or deletes clusters.
//   - [EachDatabase] runs a test on SQLite and on PostgreSQL; a package that uses it needs postgrestest.Main as its TestMain.
//   - [Seed] makes random tests repeatable: it logs the seed, and TEST_SEED sets it.
//
// Every service stops when its test ends; an error from a service fails the test.
package harness
