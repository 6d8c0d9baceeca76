import Glibc
import PromiseDomain

/// The user's name and password in the environment. They are taken out of it before anything else is started, so that no
/// process that this one starts inherits them.
enum LoginVariables {
    static func take() -> Login? {
        defer {
            unsetenv("PROMISEFS_USER")
            unsetenv("PROMISEFS_PASSWORD")
        }
        return Login(user: environment("PROMISEFS_USER"), password: environment("PROMISEFS_PASSWORD"))
    }
}
