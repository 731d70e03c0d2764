// Package e2e tests broker, Provisioner and garden together through their APIs.
//
// Tests without a build tag run both services in the test process, on the fake garden; a few run the sandbox as a separate
// process. Tests with the build tag `garden` run each service as a process, on the local garden. The tests whose names end
// with _garden_test.go have this tag, and so have those of killed programs and of replicas.
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
//   - Several replicas of the broker under load: replicas, rolling, with the customers in orders.
//   - Several replicas of the Provisioner: provisioner_replicas, with the operations in scenario and scenario_run, and the
//     expected results in final_state.
//   - The fleet of replicas that these tests share: fleet, fleet_agents, fleet_director, fleet_services, replica, fault_injection.
//   - Helpers of all tests: fixture (services in the test process), programs (services as processes), graphql (requests to a
//     Provisioner), faultproxy (faults below TLS), dbview (operations in a database). dbview_check tests the last one.
//   - The command line of the programs: arguments. The roles for each endpoint: roles.
package e2e
