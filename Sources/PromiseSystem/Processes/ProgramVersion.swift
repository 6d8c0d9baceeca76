internal import CPromiseVersion

/// `0.1.0`: of this program, as it was built.
package let programVersion = String(cString: promise_version())
