// Package crash plays the processes of both services in the crash matrix: every one that a service registers has a scene here.
package crash
