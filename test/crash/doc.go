// Package crash runs the processes of both services in the crash matrix of package crashtest. Each registered process has a scenario here;
// TestEveryRegisteredProcessHasAScenario fails without one.
package crash
