// Package crashtest tests processes against crashes.
//
// A Scenario builds an environment on fake time. Its script accepts operations, and replicas run them. Each replica reaches its store and
// the upstreams through its own Proxy. The first run has no fault and collects the points at which one can be injected. Each
// further run injects a Fault at one or two of these points: the replica dies before or after the call, the call or its response is lost,
// or the replica is frozen and continues after another one has taken over.
//
// Every run must end like the first: with the same states, data and objects in the upstreams, with complete timelines, and without
// repeating a step of a finished stage. A new process needs a Scenario in test/crash: see Covers.
package crashtest
