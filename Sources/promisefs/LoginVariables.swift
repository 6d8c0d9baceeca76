import Glibc
import PromiseDomain

/// The user's name and password in the environment. They are taken out of it before anything else is started, so that no
/// process that this one starts inherits them.
enum LoginVariables {
    static func take() -> Login? {
        let login = Login(user: environment("PROMISEFS_USER"), password: environment("PROMISEFS_PASSWORD"))
        for name in ["PROMISEFS_USER", "PROMISEFS_PASSWORD"] {
            // What was there when the process began can be read in /proc for as long as it runs (proc_pid_environ(5)).
            if let value = getenv(name) { memset(value, 0, strlen(value)) }
            unsetenv(name)
        }
        return login
    }
}
