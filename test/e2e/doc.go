// Package e2e tests broker, Provisioner and garden together through their APIs.
//
// Tests without a build tag run both services in the test process, with the fake garden; a few run the sandbox as a separate
// process. Tests with the `garden` build tag run each service as a separate process, with the local garden. The files whose names
// end with _garden_test.go have this tag, and so have the tests of killed programs and of replicas.
//
// The files, by topic, without the suffix _test.go:
//
//   - Instances of the broker: lifecycle, bindings, interventions, operator, sandbox, tls, tracing.
//   - The account pool: account_pool, account_cleanup.
//   - Runtimes of a Provisioner without a broker: runtimes, manual_pools, enqueue_in_progress, gardener_calls, agent, director,
//     services, sandbox_agents.
//   - Kyma on runtimes: kyma, kyma_registry, with the OCI registry in registry, and control_plane_garden.
//   - Outages and faults: provisioner_faults, provisioner_outage, gardener_outage, connection_limit, killed_programs.
//   - The local garden: local_garden, bindings_garden, kyma_garden, shoots_garden, ownership_garden, permissions_garden.
//     Most tests share the gardens in shared_gardens_garden, each with a project of its own. A test with its own garden takes about
//     20 seconds of CPU time longer.
//   - Several replicas of the broker under load: replicas, rolling, with the customers in orders.
//   - Several replicas of the Provisioner: provisioner_replicas, with the operations in scenario and scenario_run, and the
//     expected results in final_state.
//   - The fleet of replicas that these tests share: fleet, fleet_agents, fleet_director, fleet_services, replica, fault_injection.
//   - Helpers for all tests: fixture (services in the test process), programs (services as processes), graphql (requests to a
//     Provisioner), faultproxy (faults below TLS), dbview (operations in a database). dbview_check tests dbview.
//   - The command lines of the programs: arguments. The roles for each endpoint: roles.
package e2e
