import Glibc
import PromiseDomain

/// The user's name and password in the environment, and an access key as the tools of AWS have it. The secrets among them are
/// taken out of it before anything else is started, so that no process that this one starts inherits them.
enum LoginVariables {
    private static let containerToken = "AWS_CONTAINER_AUTHORIZATION_TOKEN"
    private static let secrets = [
        "PROMISEFS_USER", "PROMISEFS_PASSWORD", "PROMISEFS_OLD_USER", "PROMISEFS_OLD_PASSWORD",
        "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", containerToken,
    ]

    /// For two storages at once: `old` is who the user is at the one that a domain leaves. Keys of AWS
    /// are good for both, as they are never sent.
    static func takeBoth() -> (old: Login?, new: Login?) {
        let (user, password) = (environment("PROMISEFS_OLD_USER"), environment("PROMISEFS_OLD_PASSWORD"))
        let new = take()
        let old = Login(
            user: user, password: password, accessKey: new?.accessKey, containerToken: new?.containerToken)
        return (old, new)
    }

    static func take() -> Login? {
        let accessKey = Login.AccessKey(
            identifier: environment("AWS_ACCESS_KEY_ID"), secret: environment("AWS_SECRET_ACCESS_KEY"),
            sessionToken: environment("AWS_SESSION_TOKEN"))
        let login = Login(
            user: environment("PROMISEFS_USER"), password: environment("PROMISEFS_PASSWORD"), accessKey: accessKey,
            containerToken: environment(containerToken))
        for name in secrets {
            // What was there when the process began can be read in /proc for as long as it runs (proc_pid_environ(5)).
            if let value = getenv(name) { memset(value, 0, strlen(value)) }
            unsetenv(name)
        }
        return login
    }
}
