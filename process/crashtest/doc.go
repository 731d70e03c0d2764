// Package crashtest tests processes against crashes.
//
// A Scenario builds an environment in fake time (testing/synctest). Its script accepts operations, and replicas run them. Each
// replica reaches its store and the upstreams through its own Proxy. The first run has no fault and collects all points where a
// fault can be injected. Each further run injects a Fault at one or two of these points: the replica dies before or after the
// call, the call or its response is lost, or the replica is frozen and continues after another replica has taken over.
//
// A scenario can also test the background work of a replica, which runs next to the engine and makes its calls through the same
// Proxy.
//
// The first run must end as Scenario.Expected says. Every other run must end like the first, with the same states, data and objects in
// the upstreams, and with complete timelines. No step of a finished stage may run again. A monitor checks the fences, takeovers and
// finished stages at every claim and write.
//
// A new process needs a Scenario in test/crash; Covers fails until it has one. A new method of process.Store that writes needs
// a fault point in faultproxy.go. A new invariant belongs in monitor.go if every write must preserve it, and in outcome.go if
// it applies only to the result of a run.
package crashtest
