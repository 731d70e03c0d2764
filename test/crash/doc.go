// Package crash runs the processes of both services in the crash matrix of package crashtest. Each registered process has a scenario here.
package crash
