// Package crashtest tests processes against crashes.
//
// A Scenario builds an environment in fake time (testing/synctest). Its script accepts operations, and replicas run them. Each
// replica reaches its store and the upstreams through its own Proxy. The first run has no fault and collects the points at which
// one can be injected. Each further run injects a Fault at one or two of these points: the replica dies before or after the call,
// the call or its response is lost, or the replica is frozen and continues after another one has taken over.
//
// Every run must end like the first: with the same states, data and objects in the upstreams, with complete timelines, and
// without repeating a step of a finished stage. A monitor checks the fences, takeovers and finished stages at every claim and
// write.
//
// A new process needs a Scenario in test/crash; Covers fails until it has one. A new method of process.Store that writes needs a
// fault point in faultproxy.go. A new invariant belongs in monitor.go if it holds at every write, and in outcome.go if it holds
// after the run.
package crashtest
